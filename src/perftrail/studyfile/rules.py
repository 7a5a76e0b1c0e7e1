"""x."""


def check(document, study, complaints):
    pass
