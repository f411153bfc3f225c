import numpy as np
import pytest
from matplotlib.patches import Circle
from scipy.stats import special_ortho_group

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import BOLTZMANN, kabsch_distances
from cdsampler.report import predictive_figure, ramachandran_figure, structure_figure
from cdsampler.report._structures import _turned
from cdsampler.targets import bayesian_neural_network

ETHANE = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5)]


class TestRamachandran:
    def test_both_panels_share_limits_and_the_colour_scale(self):
        rng = np.random.default_rng(1)
        samples, reference = rng.normal(-1.5, 0.3, (400, 2)), rng.normal(-1.5, 0.6, (3000, 2))
        figure = ramachandran_figure(samples, reference)
        figure.draw_without_rendering()
        first, second, bar = figure.axes
        assert first.get_xlim() == second.get_xlim() == first.get_ylim() == (-180, 180)
        assert first.images[0].get_clim() == second.images[0].get_clim()
        assert bar.get_ylabel() == "free energy (kJ/mol)"
        assert first.get_title(loc="left") == "Samples (n = 400); C7ax: 0 %"
        assert (first.get_xlabel(), first.get_ylabel()) == ("φ (degrees)", "ψ (degrees)")

    def test_free_energies_are_where_and_what_they_should_be(self):
        # Nine draws in one place, three in another that is also at positive φ.
        angles = np.radians([[-91.0, 61.0]] * 9 + [[61.0, -91.0 + 360]] * 3)
        figure = ramachandran_figure(angles, temperature_kelvin=300.0)
        image = figure.axes[0].images[0].get_array()
        assert np.count_nonzero(np.isfinite(image)) == 2
        row, column = np.argwhere(np.isfinite(image) & (image > 0))[0]
        assert (-180 + 6 * column, -180 + 6 * row) == (60, -96)
        assert image[row, column] == pytest.approx(BOLTZMANN * 300 * np.log(3))
        assert "C7ax: 25 %" in figure.axes[0].get_title(loc="left")

    @pytest.mark.parametrize("bad", [np.zeros((0, 2)), np.zeros((4, 3)), np.full((4, 2), np.nan)])
    def test_other_shapes_are_refused(self, bad):
        with pytest.raises(InvalidInputError, match=r"Reference: angles must be finite, of shape \(n, 2\)"):
            ramachandran_figure(np.zeros((3, 2)), bad)


class TestPredictive:
    def test_the_truth_lies_in_the_band_of_its_neighbours_and_not_in_that_of_the_prior(self):
        target = bayesian_neural_network()
        rng = np.random.default_rng(2)
        near = np.asarray(target.true_parameters) + 0.01 * rng.standard_normal((100, target.dim))
        figure = predictive_figure(target, near, rng.standard_normal((100, target.dim)))
        figure.draw_without_rendering()
        lines = {line.get_label(): np.asarray(line.get_ydata()) for line in figure.axes[0].lines}
        truth = lines["function that made the labels"]
        # The noise of labels, 0.1, is most of the band; a mean of 100 such networks is much nearer than that.
        assert np.abs(lines["samples, mean"] - truth).max() < 0.1
        assert np.abs(lines["reference, mean"] - truth).max() > 0.3
        below = {line.get_label(): np.asarray(line.get_ydata()) for line in figure.axes[1].lines}
        np.testing.assert_allclose(below["samples, mean"], lines["samples, mean"] - truth)

    def test_other_shapes_are_refused(self):
        with pytest.raises(InvalidInputError, match=r"shape \(n, 550\)"):
            predictive_figure(bayesian_neural_network(), np.zeros((3, 5)))


class TestStructures:
    def test_a_molecule_is_one_panel_of_superposed_sticks(self):
        rng = np.random.default_rng(3)
        x = rng.standard_normal((6, 3))
        turned = x @ special_ortho_group.rvs(3, random_state=4) + 5
        figure = structure_figure(
            np.stack([x, turned]), bonds=ETHANE, names=["C", "C", "H", "H", "H", "H"], titles=["a"]
        )
        figure.draw_without_rendering()
        (axes,) = figure.axes
        assert len(axes.lines) == 5 + 2 * 5
        np.testing.assert_allclose(
            *_turned(np.stack([x - x.mean(0), turned - turned.mean(0)]), together=True), atol=1e-9
        )

    def test_no_picture_shows_a_mirror_image(self):
        x = np.random.default_rng(3).standard_normal((5, 6, 3))
        x -= x.mean(axis=1, keepdims=True)
        for together in (True, False):
            np.testing.assert_allclose(np.diag(kabsch_distances(x, _turned(x, together=together))), 0, atol=1e-6)

    def test_clusters_are_spheres_of_one_scale_in_a_panel_each(self):
        x = np.random.default_rng(3).standard_normal((3, 13, 3)) * np.array([1, 1, 4])[:, None, None]
        figure = structure_figure(x, titles=["a", "b", "c"])
        figure.draw_without_rendering()
        assert [axes.get_title() for axes in figure.axes] == ["a", "b", "c"]
        assert len({axes.get_xlim() for axes in figure.axes}) == 1
        for axes in figure.axes:
            circles = [patch for patch in axes.patches if isinstance(patch, Circle)]
            assert len(circles) == 13
            low, high = axes.get_xlim()
            assert all(low <= c.center[0] - c.radius and c.center[0] + c.radius <= high for c in circles)

    @pytest.mark.parametrize("bad", [np.zeros((4, 3)), np.zeros((0, 4, 3)), np.full((1, 4, 3), np.inf)])
    def test_other_shapes_are_refused(self, bad):
        with pytest.raises(InvalidInputError, match="Structures must be finite"):
            structure_figure(bad)
