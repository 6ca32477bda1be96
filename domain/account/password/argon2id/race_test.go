//go:build race

package argon2id

const comparisons = 500 // a hash in Go is ten times slower
