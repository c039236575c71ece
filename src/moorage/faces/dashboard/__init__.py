"""The dashboard at `/ui`: pages for people, rendered here, live with a little JavaScript.

`app.py` is the entry point; `routes.py` joins the tables of `pages/`, whose types are in
`routing.py`. `signing_in.py` signs readers in and knows them by their cookie, `forms.py` checks
what they submit, `outward.py` puts the path prefix before addresses, `headers.py` has the policy
for browsers and the attributes of the cookie. `rendering.py` renders the templates in `templates/`,
with the ages of `ages.py` and the links of `navigation.py`; `live.py` keeps open pages current.
`assets.py` serves the files of `static/`, `plots.py` draws plots, `recent_answers.py` keeps slow
answers for some seconds; `actions.py` has what forms share, `exports.py` writes CSV and JSON. It
decides nothing: everything on a page comes from the native API, on behalf of the reader; only the
map of the fleet and the page of a machine read the catalog, with the rights of a reader. May
import: the root of `faces`, `faces/auth`, `service`, `core`, `wire`.
"""
