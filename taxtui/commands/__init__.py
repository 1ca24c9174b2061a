"""One module per subcommand of ``taxtui``; imported only when the subcommand is called."""
