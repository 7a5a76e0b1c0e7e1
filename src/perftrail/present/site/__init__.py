"""The static site of `publish`: what is published, its state, its index page, its badge, and its files.

- `publication`: what a study adds to earlier publications. `history`: all publications joined, and the state of each
  metric. `index_page`: the page with the state, the charts and the list of reports. `badge`: the state as an image.
- `directory`: the files of a site; it only adds to what was published.
"""
