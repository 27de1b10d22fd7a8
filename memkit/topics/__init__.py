"""Topics: the subjects of a project, found in the vectors of its index.

`compute` makes them: `clusters` reads the entries as points and groups them, and `labels` names the groups.
`files` is a cache of the result. `topic_store` keeps the IDs, members, and labels. `topic_list` reads both.
`names` has a model name topics, where summaries are on. `background` is the job.
"""
