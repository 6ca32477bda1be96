//go:build !race

package argon2id

const comparisons = 5_040
