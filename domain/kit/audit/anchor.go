package audit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Anchor names a checkpoint of the audit trail (D-EXT-03). Who keeps one outside of
// the database can prove later that nothing up to it is gone.
type Anchor struct {
	Counter int64 // 1, 2, 3 …; 0: no checkpoint
	MAC     []byte
}

// String is COUNTER:MAC, as ParseAnchor reads it.
func (a Anchor) String() string { return fmt.Sprintf("%d:%x", a.Counter, a.MAC) }

// ParseAnchor reads what String wrote.
func ParseAnchor(s string) (Anchor, error) {
	counter, mac, _ := strings.Cut(s, ":")
	n, err := strconv.ParseInt(counter, 10, 64)
	b, err2 := hex.DecodeString(mac)
	if err != nil || err2 != nil || n < 1 || len(b) != 32 {
		return Anchor{}, errors.New("want COUNTER:MAC, a number and 64 hexadecimal digits")
	}
	return Anchor{Counter: n, MAC: b}, nil
}

// State is how the trail stands by its last checkpoint.
type State struct {
	Last   Anchor
	At     time.Time // of the last checkpoint
	Broken string    // what does not hold; "" where all holds
}

// Archive is a file of rows that left the database.
type Archive struct {
	Counter int64 // 1, 2, 3 …; 0: none
	Name    string
	Digest  []byte // SHA-256 of the file
	Rows    int64
	At      time.Time
}
