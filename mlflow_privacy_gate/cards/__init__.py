"""Model cards and reports: views of the evidence and its verdict; nothing in a view is typed by hand or computed twice."""
