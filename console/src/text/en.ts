import app from './en/app.json';
import kit from './en/kit.json';
import user from './en/user.json';
import kyc from './en/kyc.json';
import money from './en/money.json';
import content from './en/content.json';
import security from './en/security.json';
import system from './en/system.json';
import own from './en/own.json';
import state from './en/state.json';

export default { ...app, ...kit, ...user, ...kyc, ...money, ...content, ...security, ...system, ...own, ...state };
