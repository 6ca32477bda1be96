package engine

import (
	"encoding/json"
	"fmt"
	"time"
)

// Millis returns the column value of an instant: milliseconds since 1970, 0 for none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time returns the instant in a column, in UTC.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// WriteJSON encodes a plain value. It panics on a value that JSON cannot represent, which is a programming error.
func WriteJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("persistence: encode %T: %v", v, err))
	}
	return string(b)
}
