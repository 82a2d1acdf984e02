"""What people and programs are told: plain functions from rows to frozen values for the wire."""
