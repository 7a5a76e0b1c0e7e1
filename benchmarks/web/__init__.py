"""How quick the dashboard's pages are over a store that is full."""
