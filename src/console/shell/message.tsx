/** All that there is to say at the address of a share link or of a wall. */
import { Logo } from './logo.js';

export const Message = ({ text }: { text: string }) => (
  <main class="login">
    <div class="login-card">
      <Logo size={44} />
      <h1>{text}</h1>
    </div>
  </main>
);
