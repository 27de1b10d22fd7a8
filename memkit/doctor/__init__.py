"""What is wrong with a memory home and a project, what that means, and what mends it.

One module an area, with functions that yield findings; `registry` knows them all, and `memkit doctor` prints.
"""
