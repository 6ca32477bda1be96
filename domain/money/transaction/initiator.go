package transaction

import (
	"strings"

	"castellan/domain/kit/audit"
)

// Initiator is who asked for a movement: Owner, "OPERATOR:" with the id of a user, or "SERVICE:" with the name of a
// key. It is "" in rows of earlier versions.
type Initiator string

// Owner is the owner of the account, who has approved the movement by a challenge.
const Owner Initiator = "USER"

// initiatorOf returns the initiator of a request that was made without the owner.
func initiatorOf(by audit.By) Initiator {
	if key, is := strings.CutPrefix(by.UserID, audit.ByService); is {
		return Initiator("SERVICE:" + key)
	}
	return Initiator("OPERATOR:" + by.UserID)
}
