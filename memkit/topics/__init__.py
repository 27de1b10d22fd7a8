"""Topics: what a project is about, found in the vectors of its index.

`compute` makes them: `points` are the entries, `clusters` groups them, `labels` names the groups, and
`matching` gives them the ids of earlier topics. `files` holds the result, `topic_store` what outlives it;
`topic_list` reads both. `names` has a model name them, where summaries are on. `background` is the job.
"""
