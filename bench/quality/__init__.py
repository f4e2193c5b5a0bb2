"""How good the answers are: public tasks with tests, answered by Draftline and by its peers."""
