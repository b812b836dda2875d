"""The vocabulary in which offset questions are asked and answers are judged.

A scenario is written with `scenario`, the specs of `specs`, the accepted answers of `answers` and the
`Partition` it is handed. Nothing here starts a broker (that is `backends`) or draws a matrix (`reports`).
"""
