"""Conversations for the demo checkpoint, written by a program: tables of sentences and a fixed seed.

Every sentence comes from the tables in this package; no other text is used. What the tables say about Cria
has to stay true of the project, because the model repeats it.
"""
