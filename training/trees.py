"""A fitted scikit-learn gradient boosting model -> the trees of a parameters file."""

from __future__ import annotations

from typing import Any

from guardrail.judges.local.combiner import Tree


def export_trees(model: Any, names: list[str]) -> tuple[float, list[Tree]]:
    """``(bias, trees)`` of a binary HistGradientBoostingClassifier: the log odds are the bias plus one
    leaf each.

    Nodes are numbered from the root, 0, as the model does. Leaves have feature "" and no children.
    """
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        trees.append(
            Tree(
                features=[("" if n["is_leaf"] else names[int(n["feature_idx"])]) for n in nodes],
                thresholds=[0.0 if n["is_leaf"] else float(n["num_threshold"]) for n in nodes],
                lower=[0 if n["is_leaf"] else int(n["left"]) for n in nodes],
                upper=[0 if n["is_leaf"] else int(n["right"]) for n in nodes],
                values=[round(float(n["value"]), 5) if n["is_leaf"] else 0.0 for n in nodes],
            )
        )
    return float(model._baseline_prediction[0, 0]), trees
