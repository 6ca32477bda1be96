package factor

import (
	"github.com/uptrace/bun"

	"castellan/domain/kit/commit"
	"castellan/persistence/engine"
)

// UserStep is the row of the changes of an account that need few columns. It is in the lowest area
// that changes them.
type UserStep struct {
	bun.BaseModel `bun:"table:users"`

	ID   string
	Seen int64 // the version, of whichever kind, that the writer saw
	Text string
	Dial string // the dialling code
	N    int64
	Yes  bool
}

// SetUser is an UPDATE of an account that nothing refuses.
func SetUser[W commit.Write](set string, row func(W) UserStep) engine.Kind {
	return engine.Update("UPDATE users SET "+set+" {FROM v} WHERE users.id = v.id", row)
}
