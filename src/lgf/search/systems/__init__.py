"""The search for systems: terms selected for each equation alone, judged by joint fits."""
