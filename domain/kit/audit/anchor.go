package audit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Anchor names a checkpoint of the audit trail (D-EXT-03). A copy kept outside of the database proves later that no row
// up to it is missing.
type Anchor struct {
	Counter int64 // 1, 2, 3 …; 0: no checkpoint
	MAC     []byte
}

// String returns COUNTER:MAC, the format of ParseAnchor.
func (a Anchor) String() string { return fmt.Sprintf("%d:%x", a.Counter, a.MAC) }

// ParseAnchor parses the output of String.
func ParseAnchor(s string) (Anchor, error) {
	counter, mac, _ := strings.Cut(s, ":")
	n, err := strconv.ParseInt(counter, 10, 64)
	b, err2 := hex.DecodeString(mac)
	if err != nil || err2 != nil || n < 1 || len(b) != 32 {
		return Anchor{}, errors.New("want COUNTER:MAC, a number and 64 hexadecimal digits")
	}
	return Anchor{Counter: n, MAC: b}, nil
}

// State is the state of the trail as of its last checkpoint.
type State struct {
	Last   Anchor
	At     time.Time // of the last checkpoint
	Broken string    // the failed check; "" if all checks pass
}

// Archive is a file of rows that were moved out of the database.
type Archive struct {
	Counter int64 // 1, 2, 3 …; 0: none
	Name    string
	Digest  []byte // SHA-256 of the file
	Rows    int64
	At      time.Time
}
