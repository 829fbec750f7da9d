import math
from dataclasses import replace

import numpy as np

from lgf.data import Problem
from lgf.report.canvas import png
from lgf.report.figures import MOST_EXPERIMENTS, figures, history_figure, trajectory_figure


def test_figures_are_images_and_the_same_each_time(duffing):
    again = figures(duffing)
    for name, figure in figures(duffing).items():
        image = png(figure)
        assert image.startswith(b"\x89PNG")
        assert image == png(again[name])


def test_the_curve_is_the_solution_and_the_residuals_are_what_is_left(duffing):
    above, below = trajectory_figure(duffing).axes
    observation = duffing.request.problem.observations[0]
    measured, curve = above.lines
    np.testing.assert_array_equal(measured.get_ydata(), observation.values[:, 0])
    at_samples = np.isin(curve.get_xdata(), observation.t)
    np.testing.assert_allclose(
        np.asarray(below.lines[1].get_ydata()), observation.values[:, 0] - np.asarray(curve.get_ydata())[at_samples]
    )
    assert np.std(below.lines[1].get_ydata()) < 0.1 * np.std(observation.values)


def test_many_experiments_are_not_all_drawn(decay):
    observations = decay.request.problem.observations * 5
    request = replace(decay.request, problem=Problem(observations, decay.request.problem.knowledge))
    own = decay.best.fit
    fit = replace(own, initial=np.tile(own.initial, (5, 1)), by_experiment=np.tile(own.by_experiment, (5, 1)))
    best = replace(decay.best, fit=fit)
    others = {"indistinguishable": (best,), "front": (best,), "prediction_front": ()}
    many = replace(decay, request=request, best=best, branches=decay.branches * 5, **others)
    figure = trajectory_figure(many)
    assert len(figure.axes) == 2 * MOST_EXPERIMENTS
    assert "4 more" in figure.axes[-1].get_xlabel()


def test_a_run_without_history_can_be_drawn(decay):
    assert png(history_figure(replace(decay, history=()))).startswith(b"\x89PNG")


def test_iterations_in_which_nothing_could_be_solved_are_not_drawn(decay):
    first = replace(decay.history[0], best=math.inf, top=math.inf)
    figure = history_figure(replace(decay, history=(first, *decay.history[1:])))
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert [len(values) for values in drawn] == [len(decay.history) - 1] * 2
    assert png(figure).startswith(b"\x89PNG")


def test_no_figure_stays_open(duffing):
    from matplotlib import _pylab_helpers

    figures(duffing)
    assert not _pylab_helpers.Gcf.figs
