package account

import (
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/persistence/engine"
	"castellan/persistence/factor"
)

// userFence is an UPDATE that takes effect where the column still holds the version
// that the writer saw.
func userFence[W commit.Fence](column, set string, row func(W) factor.UserStep) engine.Kind {
	return engine.Fenced("UPDATE users SET "+set+" {FROM v} WHERE users.id = v.id AND users."+column+
		" = v.seen {RETURNING users.id}", row)
}

// raised raises the money version, and renewed also records a change of credentials at v.n.
const (
	raised  = ", money_version = COALESCE(users.money_version, 0) + 1"
	renewed = raised + ", credentials_at = v.n"
)

// UserFences are the fenced writes of accounts. Those that are fenced by cv come before EndSessions, which raises cv
// beside sv: a unit may hold both.
func UserFences(now func() time.Time) []engine.Kind {
	instant := func() int64 { return engine.Millis(now()) }
	return []engine.Kind{
		userFence("cv", "previous_hash = users.password_hash, password_hash = v.text, must_reset = FALSE, "+
			"cv = users.cv + 1"+renewed, func(w user.SetPassword) factor.UserStep {
			return factor.UserStep{ID: w.UserID, Seen: w.CV, Text: w.Hash, N: instant()}
		}),
		userFence("cv", "countries = v.text, cv = users.cv + 1", func(w user.SetCountries) factor.UserStep {
			return factor.UserStep{ID: w.UserID, Seen: w.CV, Text: string(w.Countries)}
		}),
		setPhone(instant),
		userFence("cv", "email = v.text, email_verified = FALSE, cv = users.cv + 1"+renewed,
			func(w user.SetMail) factor.UserStep {
				return factor.UserStep{ID: w.UserID, Seen: w.CV, Text: w.Mail, N: instant()}
			}),
		userFence("cv", "status = v.text, cv = users.cv + 1"+raised, func(w user.SetStatus) factor.UserStep {
			return factor.UserStep{ID: w.UserID, Seen: w.CV, Text: string(w.Status)}
		}),
		userFence("sv", "sv = users.sv + 1, cv = users.cv + 1, sv_at = v.n", func(w user.EndSessions) factor.UserStep {
			return factor.UserStep{ID: w.UserID, Seen: w.SV, N: engine.Millis(w.At)}
		}),
		userFence("cv", "totp = v.yes, cv = users.cv + 1"+renewed, func(w user.SetTOTP) factor.UserStep {
			return factor.UserStep{ID: w.UserID, Seen: w.CV, Yes: w.Defined, N: instant()}
		}),
		userFence("cv", "push = v.yes, passkey_handle = NULLIF(v.text, ''), cv = users.cv + 1"+renewed,
			func(w user.SetPush) factor.UserStep {
				return factor.UserStep{ID: w.UserID, Seen: w.CV, Yes: w.Owned, Text: w.Handle, N: instant()}
			}),
	}
}
