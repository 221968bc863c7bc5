"""Fool a trained classifier by changing no pixel by more than a little, from its scores alone.

The scores of a multilayer perceptron on 8 x 8 digits are deterministic; ``bounds`` keep the picture
within reach of the original. Writes adversarial.html.
"""

import numpy as np
from plotly.subplots import make_subplots
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import scgd

REACH = 0.2


def main():
    images, digits = load_digits(return_X_y=True)
    images = images / 16.0
    model = MLPClassifier((64,), max_iter=300, random_state=0, tol=1e-3).fit(
        images[:1500], digits[:1500]
    )
    right = np.flatnonzero(model.predict(images[1500:]) == digits[1500:])[:5] + 1500
    figure = make_subplots(2, len(right))
    fooled = 0
    for column, i in enumerate(right, start=1):
        image, digit = images[i], digits[i]

        def margin(x, digit=digit):
            scores = np.log(model.predict_proba(x[None])[0] + 1e-300)
            return float(scores[digit] - np.max(np.delete(scores, digit)))

        low, high = np.maximum(image - REACH, 0), np.minimum(image + REACH, 1)
        result = scgd.minimize(
            margin, image, bounds=np.c_[low, high], max_evals=2500, target=-0.5, seed=0
        )
        guess = model.predict(result.x[None])[0]
        fooled += guess != digit
        print(f"a {digit} is now read as {guess}; margin {result.fun:.2f}, {result.nfev} queries")
        for row, picture in ((1, image), (2, result.x)):
            figure.add_heatmap(
                z=picture.reshape(8, 8)[::-1], colorscale="Greys", showscale=False,
                row=row, col=column,
            )  # fmt: skip
    figure.update_layout(height=500, title=f"original and changed digits: {fooled} of 5 fooled")
    figure.write_html("adversarial.html")
    print(f"fooled {fooled} of {len(right)}; picture: adversarial.html")


if __name__ == "__main__":
    main()
