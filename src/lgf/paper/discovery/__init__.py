"""2.5: the nested discovery: proposals of the guided flow, fitted and judged."""
