"""A party's and the curator's half of a secure sum, in each noise mode."""
