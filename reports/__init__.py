"""Reports: Spark folds result files into a matrix that shows who answers like Apache Kafka.

For: reading result files wherever they came from, accounting for every line of them, folding them into the
matrix and into history, and rendering what they tell for a terminal, as Markdown, JSON, JUnit and badges.

Left to others: running scenarios and judging answers (a verdict arrives here ready-made), finding a Java
runtime, and the command line. The only thing this room knows of the project is the published result line,
`conformance/result.schema.json`.
"""
