package challenge

import "time"

// Recall completes a method of a new challenge because its client is remembered (D-AUTH-17). No value was given, so
// none can repeat it.
func (c Challenge) Recall(now time.Time, method int, client string) Challenge {
	next := c.clone()
	m := &next.Methods[method]
	m.Order, m.CompletedAt, m.Remembered = 1+len(c.CompletedMethods()), now.UnixMilli(), client
	m.Number, m.Digest = "", Digest{}
	if next.ready() {
		next.State, next.Last = Executing, m.ID
	}
	return next
}
