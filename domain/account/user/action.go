package user

import (
	"context"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
)

// The codes of the actions on the account itself (D-2FA-27).
const (
	ActionVerifyEmail = "VERIFY_EMAIL"
	ActionVideoKYC    = "DURING_VIDEO_KYC"
)

// VerifyEmailAction is the action of VERIFY_EMAIL: the user typed the code sent to the account's address, and so has
// proved to own it.
func VerifyEmailAction() challenge.Action {
	return challenge.Action{Code: ActionVerifyEmail, Flow: challenge.FlowSession,
		Build: func(_ context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
			return challenge.Result{Success: true}, []commit.Write{VerifyMail{x.Challenge.UserID}}, nil
		}}
}

// VideoKYCAction is the action of DURING_VIDEO_KYC: its outcome proves to the video call that the account's owner is
// present.
func VideoKYCAction() challenge.Action {
	return challenge.Action{Code: ActionVideoKYC, Flow: challenge.FlowSession,
		Build: func(context.Context, challenge.Execution) (challenge.Result, []commit.Write, error) {
			return challenge.Result{Success: true}, nil, nil
		}}
}
