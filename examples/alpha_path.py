"""
A lasso along its whole path
============================

Follow a lasso along its whole path: which features enter, and which penalty predicts best.

Each model starts from its neighbour's solution; five folds judge them. Writes alpha_path.html.
"""

import numpy as np
from plotly.subplots import make_subplots
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from scgd.linear import SCGDRegressor, SCGDRegressorCV

data = load_diabetes()
products = PolynomialFeatures(2, include_bias=False).fit(data.data)
X = StandardScaler().fit_transform(products.transform(data.data))
y = data.target - data.target.mean()
names = products.get_feature_names_out(data.feature_names)


def main():
    search = SCGDRegressorCV(penalty="l1", alphas=40, cv=5, random_state=0).fit(X, y)
    used = np.count_nonzero(search.coef_)
    print(f"alpha {search.alpha_:.3g} of {len(search.alphas_)}: {used} of {X.shape[1]} features")
    print(f"R2 over the folds {search.best_score_:.3f}")
    coefs = np.array(
        [SCGDRegressor(penalty="l1", alpha=alpha, random_state=0).fit(X, y).coef_
         for alpha in search.alphas_]
    )  # fmt: skip
    picture(search, coefs).write_html("alpha_path.html", config={"displayModeBar": False})
    print("picture: alpha_path.html")


def picture(search, coefs):
    """Draw coefficients and scores against the penalty; the eight largest have names."""
    figure = make_subplots(
        2,
        1,
        shared_xaxes=True,
        vertical_spacing=0.08,
        subplot_titles=("coefficients", "R2, five folds"),
    )
    largest = set(np.argsort(-np.abs(coefs).max(0))[:8])
    for k in range(coefs.shape[1]):
        style = {} if k in largest else {"line": {"color": "rgba(148, 163, 184, .5)", "width": 1}}
        figure.add_scatter(
            x=search.alphas_, y=coefs[:, k], name=names[k], showlegend=k in largest, row=1, col=1,
            **style,
        )  # fmt: skip
    mean = search.scores_.mean(1)
    figure.add_scatter(
        x=search.alphas_, y=mean, row=2, col=1, showlegend=False, line={"color": "#ea580c"}
    )
    figure.add_vline(x=search.alpha_, line={"dash": "dot", "color": "#475569"})
    figure.update_xaxes(type="log", autorange="reversed")
    figure.update_xaxes(title_text="alpha", row=2, col=1)
    figure.update_layout(template="plotly_white", height=620, font_size=13)
    return figure


if __name__ == "__main__":
    main()
