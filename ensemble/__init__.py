"""What two vocabularies have in common, and how their distributions become one: pure, no model inside."""
