package webtest

import (
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// Authenticator gives the tab an authenticator that stores passkeys and verifies its user. While its user is present,
// it answers at once, also in the autofill of an input; at first the user is present. present changes that.
func (tab *Tab) Authenticator() (present func(bool)) {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		tab.t.Fatalf("enable WebAuthn: %v", err)
	}
	options := &webauthn.VirtualAuthenticatorOptions{Protocol: webauthn.AuthenticatorProtocolCtap2,
		Ctap2version: webauthn.Ctap2versionCtap21, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}
	add := webauthn.AddVirtualAuthenticatorParams{Options: options}
	made, err := chromedp.Call(tab.ctx, webauthn.AddVirtualAuthenticator, add)
	if err != nil {
		tab.t.Fatalf("add an authenticator: %v", err)
	}
	return func(yes bool) {
		tab.t.Helper()
		set := webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: made.AuthenticatorID, Enabled: yes}
		if _, err := chromedp.Call(tab.ctx, webauthn.SetAutomaticPresenceSimulation, set); err != nil {
			tab.t.Fatalf("change the presence of the user: %v", err)
		}
	}
}
