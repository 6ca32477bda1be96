package transaction

// Waiting counts the movements that wait for turns.
func (j *Judge) Waiting() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.passes {
		n += len(line)
	}
	return n
}
