package actors_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/domain/proof/stepup"
)

// signers verifies proofs for the test: a proof is the id of the device that made it. before is called between the
// verdict and the commit.
type signers struct {
	w      *world
	owner  map[string]string
	before func()
}

func (s *signers) Answered(_ context.Context, r device.Request, _ device.Answer) (device.Device, device.Claims,
	error) {
	if s.before != nil {
		s.before()
	}
	owner, ok := s.owner[r.Proof]
	if !ok {
		return device.Device{}, device.Claims{}, device.Refused()
	}
	return device.Device{ID: r.Proof, UserID: owner}, device.Claims{}, nil
}

func (s *signers) Assert(context.Context, []byte) (device.Asserted, error) {
	return device.Asserted{}, device.Refused()
}

func (s *signers) Counted(context.Context, device.Asserted, audit.By) error { return nil }

func (s *signers) Allowed(context.Context, string, passkey.Need) (device.Allowed, error) {
	return device.Allowed{}, nil
}

func (s *signers) Meets(context.Context, device.Asserted, passkey.Need) (bool, error) {
	return true, nil
}

func (s *signers) Wakes(context.Context, string) ([]device.Wake, error) { return nil, nil }

// carry registers devices of the world's user.
func (w *world) carry(ids ...string) *signers {
	w.t.Helper()
	s := &signers{w: w, owner: map[string]string{}}
	for _, id := range ids {
		_, k := devicetest.Signer(w.t, device.EdDSA)
		w.reload()
		s.owner[id] = w.user.ID
		err := w.db.Commit(w.t.Context(), user.SetPush{UserID: w.user.ID, CV: w.user.CV, Owned: true},
			device.Add{Device: device.Device{ID: id, UserID: w.user.ID, Key: k, Status: device.Active, CreatedAt: time.Now()}})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.reload()
	w.engine.Starter.Devices, w.engine.Answerer.Devices = s, s
	return s
}

func (w *world) decide(c challenge.Challenge, by, value string) (stepup.Completion, error) {
	return w.engine.Complete(context.Background(), stepup.Answer{ChallengeID: c.ID,
		MethodID: w.method(c, challenge.PUSH).ID, Method: challenge.PUSH,
		Value: value, Signed: device.Request{Proof: by}, DeviceID: by})
}

// Of simultaneous approvals and denials by two devices, one decides, and every caller receives the same result.
func TestDevicesAnswerAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.carry("d1", "d2")
		w.actions.Register(challenge.Action{Code: "UPDATE_PASSWORD",
			Exec: func(context.Context, challenge.Execution) (challenge.Result, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.effects++
				return challenge.Result{Success: true}, nil
			}})
		for range 5 {
			c := w.begin("UPDATE_PASSWORD", "")
			before := w.count()
			var yes, no atomic.Int64
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					got, err := w.decide(c, []string{"d1", "d2"}[i%2], []string{"APPROVED", "DENIED"}[i/2%2])
					switch {
					case err == nil && got.Result != nil && got.Result.Success:
						yes.Add(1)
					case err == nil && got.Result != nil:
						no.Add(1)
					case err != nil && fault.CodeOf(err) != fault.MethodAlreadyCompleted && fault.CodeOf(err) != fault.ChallengeClosed:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if made := w.count() - before; (yes.Load() > 0) == (no.Load() > 0) || made > 1 || (made == 1) != (yes.Load() > 0) {
				t.Errorf("%d times yes, %d times no, %d effects", yes.Load(), no.Load(), made)
			}
		}
	})
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects
}

// A device that is removed between the verdict and its commit decides nothing, whether or not the account's version
// rose with it.
func TestDeviceRemovedBeforeCommitDecidesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		for _, value := range []string{"APPROVED", "DENIED"} {
			s := w.carry("d-" + value)
			c := w.begin("LOGIN", "")
			s.before = func() {
				s.before = func() { delete(s.owner, "d-"+value) } // at the second verdict
				storetest.Is(t, w.db.Commit(t.Context(), device.Remove{UserID: w.user.ID, ID: "d-" + value}), nil)
			}
			if got, err := w.decide(c, "d-"+value, value); fault.CodeOf(err) != fault.DeviceSignatureInvalid {
				t.Errorf("%s: %+v, %v", value, got, err)
			}
			storetest.Is(t, storetest.Err(w.right(c, challenge.SMS)), nil, "the challenge is not as it was")
		}
	})
}
