"""Where proposals come from, one file each."""
