package user_test

import (
	"testing"

	"castellan/domain/account/user"
)

// Two decisions confirm an identity; no other state does.
func TestKYCApproved(t *testing.T) {
	for state, want := range map[string]bool{user.ManuelApproved: true, user.OCROrNFCApproved: true,
		user.WaitingApproval: false, user.Rejected: false, "": false, "approved": false} {
		if got := (user.User{KYCConfirm: state}).KYCApproved(); got != want {
			t.Errorf("%q is approved: %v", state, got)
		}
	}
}

// Names compare without case, and the four Turkish letters i are one.
func TestFoldName(t *testing.T) {
	for _, same := range [][2]string{{"IŞIK", "ışık"}, {"İrem", "irem"}, {"ÇAĞRI", "çağri"}, {"e\u0301", "É"}} {
		if a, b := user.FoldName(same[0]), user.FoldName(same[1]); a != b {
			t.Errorf("%q is %q and %q is %q", same[0], a, same[1], b)
		}
	}
	if user.FoldName("Şahin") == user.FoldName("Sahin") {
		t.Error("ş and s are one letter")
	}
}
