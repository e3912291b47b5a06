"""What the tests need around Nexo: private servers, and processes that never outlive a test run."""
