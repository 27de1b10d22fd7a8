"""Find problems of a memory home and a project, explain them, and fix them. One module per area."""
