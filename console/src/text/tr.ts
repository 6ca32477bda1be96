import app from './tr/app.json';
import kit from './tr/kit.json';
import delivery from './tr/delivery.json';
import guard from './tr/guard.json';
import access from './tr/access.json';
import money from './tr/money.json';
import office from './tr/office.json';
import people from './tr/people.json';

export default { ...app, ...kit, ...delivery, ...guard, ...access, ...money, ...office, ...people };
