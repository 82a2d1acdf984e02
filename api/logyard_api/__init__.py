"""The doors of Logyard: REST, command line, and the wiring behind them."""
