"""The journal: the daily Markdown of one project. Only this package writes memory files.

A day file has a section for each session, and inside it a section for each turn:

    # 2026-11-20

    ## 14:02 Staging gateway port <!-- session:fd0aee29-… branch:feature/gw -->

    ### 14:02 Which port does the staging gateway use? <!-- turn:8ad3df7f branch:feature/gw -->
    **Asked** …

The user may choose OpenClaw's folder for new days (see `memkit.projects.project`). There, memkit's sections
are one block in a file that belongs to others too: memkit writes no overview, and changes nothing around
them.

Every write holds a lock against other memkit processes, replaces the file atomically, and is keyed by the
turn's anchor: writing a turn twice changes nothing. What the user edited stays as it is.
"""
