package actors_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence/kit"
)

// withService registers the action behind the challenges of services. Its writes are audit rows, so a test sees what
// committed.
func (w *world) withService() {
	row := func(c challenge.Challenge, detail string) []commit.Write {
		return []commit.Write{audit.Record{At: time.Now(), Action: "SERVED", UserID: c.UserID, Target: c.ID, Detail: detail,
			Outcome: audit.Success}}
	}
	w.actions.Register(challenge.Action{Code: challenge.ServiceAction,
		Build: func(_ context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
			if string(x.Command) == "refuse" {
				return challenge.Result{}, nil, fault.New(fault.InvalidState, "no")
			}
			return challenge.Result{Success: true}, row(x.Challenge, "completed "+x.Challenge.Service), nil
		},
		Ended: func(_ context.Context, c challenge.Challenge, _ time.Time) ([]commit.Write, error) {
			return row(c, map[challenge.State]string{challenge.Denied: "denied", challenge.Closed: "closed",
				challenge.Done: "failed"}[c.State]), nil
		}})
}

// A challenge of a service runs the one action of services, whatever its code: LOGIN here runs no login. Each end
// commits its writes once.
func TestServiceChallengeRunsItsOwnAction(t *testing.T) {
	for name, c := range map[string]struct {
		command, want string
		end           func(w *world, c challenge.Challenge) error
	}{
		"completed": {"", "completed shop", func(w *world, c challenge.Challenge) error {
			_, err := w.right(c, challenge.SMS)
			return err
		}},
		"refused": {"refuse", "failed", func(w *world, c challenge.Challenge) error {
			_, err := w.right(c, challenge.SMS)
			return err
		}},
		"session": {"", "closed", func(w *world, c challenge.Challenge) error {
			w.endSession()
			_, err := w.right(c, challenge.SMS)
			if fault.CodeOf(err) == fault.ChallengeClosed {
				err = nil
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.withService()
			s, err := w.engine.Start(t.Context(), challenge.StartRequest{Action: "LOGIN", Account: w.user.Account(),
				Service: "shop", Proven: true, Starter: challenge.Starter{SessionID: "sid"}, Command: []byte(c.command)})
			storetest.Must(t, err)
			storetest.Must(t, c.end(w, s.Challenge))
			rows := storetest.Value(kit.NewAudit(w.db).List(t.Context(), audit.Query{Target: s.Challenge.ID},
				page.Query[audit.Place]{Limit: 10}))(t)
			var got []string
			for _, r := range rows.Records {
				if r.Action == "SERVED" {
					got = append(got, r.Detail)
				}
			}
			storetest.Equal(t, strings.Join(got, ","), c.want, "committed", got)
		})
	}
}
