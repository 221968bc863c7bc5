"""Teach a small neural network to balance a pole, from the cost of whole episodes alone.

481 weights, no gradients; each step evaluates its policies from one common starting state.
Writes policy_search.html.
"""

import plotly.graph_objects as go

import scgd
from scgd.compare.outside import rollout


def main():
    task = rollout()
    result = scgd.minimize(
        task.make(0), task.x0, sample=task.sample, max_evals=20_000, seed=1, progress=True
    )
    print(f"\n{result.message}")
    print(
        f"mean cost over 200 starts: {task.gap(task.x0):.3f} before, {task.gap(result.x):.3f} after"
    )
    figure = go.Figure()
    figure.add_scatter(x=result.history["nfev"], y=result.history["fun"])
    figure.update_layout(template="plotly_white", height=400, title="cost of the episodes seen")
    figure.update_xaxes(title_text="episodes")
    figure.write_html("policy_search.html")
    print("picture: policy_search.html")


if __name__ == "__main__":
    main()
