package webtest

import (
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// Authenticator is the virtual authenticator of a tab.
type Authenticator struct {
	tab *Tab
	id  webauthn.AuthenticatorID
}

// Authenticator gives the tab an authenticator that stores passkeys. While its user is present, it answers requests at
// once, also those in the autofill of an input. At first the user is present and verified.
func (tab *Tab) Authenticator() Authenticator {
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
	return Authenticator{tab, made.AuthenticatorID}
}

// Present says whether the user touches the authenticator when it asks.
func (a Authenticator) Present(yes bool) {
	a.tab.t.Helper()
	set := webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: a.id, Enabled: yes}
	if _, err := chromedp.Call(a.tab.ctx, webauthn.SetAutomaticPresenceSimulation, set); err != nil {
		a.tab.t.Fatalf("change the presence of the user: %v", err)
	}
}

// Verified says whether the authenticator recognises its user.
func (a Authenticator) Verified(yes bool) {
	a.tab.t.Helper()
	set := webauthn.SetUserVerifiedParams{AuthenticatorID: a.id, IsUserVerified: yes}
	if _, err := chromedp.Call(a.tab.ctx, webauthn.SetUserVerified, set); err != nil {
		a.tab.t.Fatalf("change the verification of the user: %v", err)
	}
}

// Rewind sets the counter of every stored passkey, as a copied authenticator would have it.
func (a Authenticator) Rewind(count float64) {
	a.tab.t.Helper()
	all, err := chromedp.Call(a.tab.ctx, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: a.id})
	if err != nil || len(all.Credentials) == 0 {
		a.tab.t.Fatalf("read the passkeys: %v", err)
	}
	for _, c := range all.Credentials {
		remove := webauthn.RemoveCredentialParams{AuthenticatorID: a.id, CredentialID: c.CredentialID}
		if _, err := chromedp.Call(a.tab.ctx, webauthn.RemoveCredential, remove); err != nil {
			a.tab.t.Fatalf("remove a passkey: %v", err)
		}
		c.SignCount = count
		add := webauthn.AddCredentialParams{AuthenticatorID: a.id, Credential: c}
		if _, err := chromedp.Call(a.tab.ctx, webauthn.AddCredential, add); err != nil {
			a.tab.t.Fatalf("add a passkey: %v", err)
		}
	}
}
