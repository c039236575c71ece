"""The dashboard at `/ui`: pages for people, rendered here, live with a little JavaScript.

`app.py` is the entry point; `routes.py` joins the tables of `pages/`, whose types are in
`routing.py`. `signing_in.py` signs readers in and knows them by their cookie, `static_files.py`
serves `static/`, `page_answers.py` answers with pages, which `live.py` keeps current, `forms.py`
checks what readers submit, `fields.py` reads numbers, durations and times, `trials.py`
shows what it would do. `rendering.py` renders the templates in `templates/`, `outward.py` puts the
path prefix before addresses, `headers.py` has the policy for browsers. `plots.py` draws plots,
`recent_answers.py` keeps slow answers for some seconds, `exports.py` writes CSV and JSON. It
decides nothing: everything on a page comes from the native API, on behalf of the reader; only the
map of the fleet and the page of a machine read the catalog, with the rights of a reader. May
import: the root of `faces`, `faces/auth`, `service`, `core`, `wire`.
"""
