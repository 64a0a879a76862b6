"""What Python processes that a program starts find first: torch is Lamella there too."""
