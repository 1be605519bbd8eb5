"""A history and how to read it: the ChatMemory protocol, segments, repair, healing, words."""
