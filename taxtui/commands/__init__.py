"""One module per subcommand of ``taxtui``; imported only when that subcommand is called."""
