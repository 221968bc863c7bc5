"""
Adversarial images without gradients
====================================

Fool a trained classifier by changing no pixel by more than a little, from its scores alone.

The scores of a multilayer perceptron on 8 x 8 digits are deterministic; ``bounds`` keep the picture
near the original. Writes adversarial.html.
"""

import numpy as np
from plotly.subplots import make_subplots
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import scgd

MOST = 0.2


def attack(model, image, digit):
    """Return the picture near the original that the model takes least for its digit."""

    def margin(x):
        scores = np.log(model.predict_proba(x[None])[0] + 1e-300)
        return float(scores[digit] - np.max(np.delete(scores, digit)))

    low, high = np.maximum(image - MOST, 0), np.minimum(image + MOST, 1)
    return scgd.minimize(
        margin, image, bounds=np.c_[low, high], max_evals=2500, target=-0.5, seed=0
    )


def main():
    images, digits = load_digits(return_X_y=True)
    images = images / 16.0
    model = MLPClassifier((64,), max_iter=300, random_state=0, tol=1e-3).fit(
        images[:1500], digits[:1500]
    )
    right = np.flatnonzero(model.predict(images[1500:]) == digits[1500:])[:5] + 1500
    attacks = []
    for image, digit in zip(images[right], digits[right], strict=True):
        result = attack(model, image, digit)
        guess = model.predict(result.x[None])[0]
        attacks.append((image, digit, result.x, guess, result.nfev))
        print(f"a {digit} is now read as {guess}; margin {result.fun:.2f}, {result.nfev} queries")
    fooled = sum(digit != guess for _, digit, _, guess, _ in attacks)
    picture(attacks, fooled).write_html("adversarial.html", config={"displayModeBar": False})
    print(f"fooled {fooled} of {len(attacks)}; picture: adversarial.html")


def picture(attacks, fooled):
    """Draw originals, changed pictures and the changes."""
    titles = [f"read as {digit}" for _, digit, _, _, _ in attacks]
    titles += [f"read as {guess} ({n:,} queries)" for _, _, _, guess, n in attacks]
    titles += ["the change"] * len(attacks)
    figure = make_subplots(3, len(attacks), subplot_titles=titles, vertical_spacing=0.07)
    for column, (image, _, changed, _, _) in enumerate(attacks, start=1):
        rows = ((image, "Greys", 0, 1), (changed, "Greys", 0, 1))
        rows += ((changed - image, "RdBu", -MOST, MOST),)
        for row, (z, colors, low, high) in enumerate(rows, start=1):
            figure.add_heatmap(
                z=z.reshape(8, 8)[::-1], colorscale=colors, zmin=low, zmax=high, showscale=False,
                row=row, col=column,
            )  # fmt: skip
    figure.update_xaxes(visible=False, constrain="domain")
    figure.update_yaxes(visible=False, scaleanchor="x", constrain="domain")
    figure.update_annotations(font_size=13)
    figure.update_layout(
        template="plotly_white", height=760, width=1150, font_size=14, margin_t=90,
        title=f"{fooled} of {len(attacks)} digits fooled, no pixel changed by more than {MOST}",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
