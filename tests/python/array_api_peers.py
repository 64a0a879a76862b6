"""Computations of SciPy and scikit-learn on arrays of any library of the array API standard.

Each row has a name and a function of (xp, index of the library); test_array_api_peers.py runs the
rows with lamella.array_api and with NumPy.
"""

import warnings


def data(xp, *shape, seed=0):
    """Numbers of the standard normal distribution."""
    import numpy as np

    return xp.asarray(np.random.default_rng(seed).standard_normal(shape))


def _scipy_rows():
    import scipy.cluster.hierarchy as hierarchy
    import scipy.cluster.vq as vq
    import scipy.ndimage as ndimage
    import scipy.signal as signal
    import scipy.special as special
    import scipy.stats as stats

    def one(function, *args, **kwargs):
        return lambda xp: function(data(xp, 30), *args, **kwargs)

    def two(function, *args, **kwargs):
        return lambda xp: function(data(xp, 30), data(xp, 30, seed=1), *args, **kwargs)

    def positive(function, *args):
        return lambda xp: function(*args, xp.abs(data(xp, 30)) + 0.5)

    return {
        "stats.skew": one(stats.skew),
        "stats.kurtosis": one(stats.kurtosis),
        "stats.moment": one(stats.moment, order=3),
        "stats.zscore": one(stats.zscore),
        "stats.sem": one(stats.sem),
        "stats.variation": one(stats.variation),
        "stats.describe": one(stats.describe),
        "stats.gmean": positive(stats.gmean),
        "stats.hmean": positive(stats.hmean),
        "stats.pmean": lambda xp: stats.pmean(xp.abs(data(xp, 30)) + 0.5, 2.0),
        "stats.entropy": positive(stats.entropy),
        "stats.pearsonr": two(stats.pearsonr),
        "stats.ttest_1samp": one(stats.ttest_1samp, 0.0),
        "stats.ttest_ind": two(stats.ttest_ind),
        "stats.ttest_rel": two(stats.ttest_rel),
        "stats.tmean": one(stats.tmean),
        "stats.tvar": one(stats.tvar),
        "stats.tstd": one(stats.tstd),
        "stats.tmin": one(stats.tmin),
        "stats.tmax": one(stats.tmax),
        "stats.skewtest": one(stats.skewtest),
        "stats.kurtosistest": one(stats.kurtosistest),
        "stats.normaltest": one(stats.normaltest),
        "stats.jarque_bera": one(stats.jarque_bera),
        "stats.chisquare": positive(stats.chisquare),
        "stats.bartlett": two(stats.bartlett),
        "stats.rankdata": one(stats.rankdata),
        "stats.circmean": one(stats.circmean),
        "stats.directional_stats": lambda xp: stats.directional_stats(
            data(xp, 10, 3)
        ).mean_direction,
        "special.logsumexp": one(special.logsumexp),
        "special.softmax": one(special.softmax),
        "special.log_softmax": one(special.log_softmax),
        "special.gammaln": positive(special.gammaln),
        "special.erf": one(special.erf),
        "special.expit": one(special.expit),
        "special.xlogy": lambda xp: special.xlogy(data(xp, 30), xp.abs(data(xp, 30)) + 0.5),
        "special.ndtr": one(special.ndtr),
        "signal.detrend": one(signal.detrend),
        "signal.savgol_filter": one(signal.savgol_filter, 7, 2),
        "signal.convolve": two(signal.convolve, method="direct"),
        "signal.hilbert": one(signal.hilbert),
        "ndimage.gaussian_filter": one(ndimage.gaussian_filter, 1.0),
        "ndimage.uniform_filter": one(ndimage.uniform_filter, 3),
        "ndimage.sobel": one(ndimage.sobel),
        "vq.whiten": lambda xp: vq.whiten(data(xp, 20, 3)),
        "vq.vq": lambda xp: vq.vq(data(xp, 20, 3), data(xp, 4, 3, seed=2)),
        "hierarchy.linkage": lambda xp: hierarchy.linkage(data(xp, 12, 3)),
        "fft.fft": lambda xp: __import__("scipy.fft").fft.fft(data(xp, 30) + 0j),
    }


def _sklearn_rows():
    from sklearn import metrics
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.mixture import GaussianMixture
    from sklearn.naive_bayes import GaussianNB
    from sklearn.preprocessing import (
        Binarizer,
        KernelCenterer,
        LabelEncoder,
        MaxAbsScaler,
        MinMaxScaler,
        Normalizer,
        PolynomialFeatures,
        StandardScaler,
    )

    def labels(xp, seed):
        return xp.astype(data(xp, 40, seed=seed) > 0, xp.int64)

    def transform(estimator):
        return lambda xp: estimator.fit(data(xp, 40, 5)).transform(data(xp, 40, 5))

    def predict(estimator, kind):
        return lambda xp: estimator.fit(data(xp, 40, 5), kind(xp)).predict(data(xp, 40, 5))

    def numbers(xp):
        return data(xp, 40, seed=3)

    def classes(xp):
        return labels(xp, 3)

    def of_labels(function, **kwargs):
        return lambda xp: function(labels(xp, 1), labels(xp, 2), **kwargs)

    def of_numbers(function, shift=0.0, **kwargs):
        return lambda xp: function(
            xp.abs(data(xp, 40, seed=1)) + shift, xp.abs(data(xp, 40, seed=2)) + shift, **kwargs
        )

    def pairs(function):
        return lambda xp: function(data(xp, 10, 4), data(xp, 12, 4, seed=1))

    return {
        "StandardScaler": transform(StandardScaler()),
        "MinMaxScaler": transform(MinMaxScaler()),
        "MaxAbsScaler": transform(MaxAbsScaler()),
        "Normalizer": transform(Normalizer()),
        "Binarizer": transform(Binarizer()),
        "PolynomialFeatures": transform(PolynomialFeatures()),
        "PCA": transform(PCA(2, svd_solver="full")),
        "KernelCenterer": lambda xp: KernelCenterer().fit_transform(
            data(xp, 9, 4) @ data(xp, 9, 4).T
        ),
        "Nystroem": transform(Nystroem(n_components=5, random_state=0)),
        "LabelEncoder": lambda xp: LabelEncoder().fit_transform(labels(xp, 1)),
        "Ridge": predict(Ridge(solver="svd"), numbers),
        "RidgeCV": predict(RidgeCV(), numbers),
        "LinearDiscriminantAnalysis": predict(LinearDiscriminantAnalysis(), classes),
        "GaussianNB": predict(GaussianNB(), classes),
        "GaussianMixture": lambda xp: GaussianMixture(2, random_state=0, init_params="random")
        .fit(data(xp, 40, 5))
        .predict(data(xp, 40, 5)),
        "accuracy_score": of_labels(metrics.accuracy_score),
        "roc_auc_score": lambda xp: metrics.roc_auc_score(labels(xp, 1), data(xp, 40, seed=2)),
        "zero_one_loss": of_labels(metrics.zero_one_loss),
        "f1_score": of_labels(metrics.f1_score),
        "precision_score": of_labels(metrics.precision_score),
        "recall_score": of_labels(metrics.recall_score),
        "jaccard_score": of_labels(metrics.jaccard_score),
        "hamming_loss": of_labels(metrics.hamming_loss),
        "confusion_matrix": of_labels(metrics.confusion_matrix),
        "mean_squared_error": of_numbers(metrics.mean_squared_error),
        "mean_absolute_error": of_numbers(metrics.mean_absolute_error),
        "median_absolute_error": of_numbers(metrics.median_absolute_error),
        "mean_absolute_percentage_error": of_numbers(metrics.mean_absolute_percentage_error),
        "mean_squared_log_error": of_numbers(metrics.mean_squared_log_error),
        "mean_tweedie_deviance": of_numbers(metrics.mean_tweedie_deviance, 0.1),
        "mean_pinball_loss": of_numbers(metrics.mean_pinball_loss),
        "max_error": of_numbers(metrics.max_error),
        "explained_variance_score": of_numbers(metrics.explained_variance_score),
        "r2_score": of_numbers(metrics.r2_score),
        "euclidean_distances": pairs(metrics.pairwise.euclidean_distances),
        "cosine_similarity": pairs(metrics.pairwise.cosine_similarity),
        "rbf_kernel": pairs(metrics.pairwise.rbf_kernel),
        "linear_kernel": pairs(metrics.pairwise.linear_kernel),
        "polynomial_kernel": pairs(metrics.pairwise.polynomial_kernel),
        "chi2_kernel": lambda xp: metrics.pairwise.additive_chi2_kernel(
            xp.abs(data(xp, 10, 4)), xp.abs(data(xp, 12, 4, seed=1))
        ),
    }


def rows(library):
    """The rows of "scipy" or "sklearn" by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _scipy_rows() if library == "scipy" else _sklearn_rows()


def parts(result):
    """The arrays and numbers of a result."""
    if isinstance(result, (list, tuple)):
        return [part for item in result for part in parts(item)]
    if hasattr(result, "statistic"):
        return parts([result.statistic, result.pvalue])
    return [result]
